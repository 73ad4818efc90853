-- A row is what the operator's token list says of a token.
create table listed_token (
    token_address bytea not null primary key,
    details text not null
);
