-- An index ends with the key of its table by itself: where that is the position, naming it too stores it twice.

drop index erc20_in;
create index erc20_in on erc20 (token);
drop index erc721_in;
create index erc721_in on erc721 (token);
drop index log_of;
create index log_of on log (address);
drop index log_with_topic;
create index log_with_topic on log (address, topic0);
