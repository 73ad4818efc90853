-- The report that a check is part of: health, readiness or liveness.
alter table health_result rename column kind to report;
