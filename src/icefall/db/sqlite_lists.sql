-- The statement of a list as a reader executes it (sqlite.py), which fills in what is in braces.

-- name: no_rows
select * from (
{list}
) limit 0;

-- name: handing
with list ({names}) as (
{list}
)
select count(hand_over({names})) from list;
