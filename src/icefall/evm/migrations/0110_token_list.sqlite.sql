-- A row is what the operator's token list says of a token. Key: the address of the token, as in `price`. Serves: logos,
-- and the names, symbols and decimals that contracts do not return.
create table listed_token (
    token_address blob not null primary key,
    details text not null -- a `ListedToken`, as JSON
) without rowid;
