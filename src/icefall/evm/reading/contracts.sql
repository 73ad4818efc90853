-- A contract. `has_code` is null for an address whose code was never read.

-- name: contract
select t.standards, t.kind, t.name, t.symbol, t.decimals,
    (select c.has_code from code c where c.address = a.id order by c.block desc limit 1)
from address a
left join token t on t.token = a.id
where a.address = :address;
