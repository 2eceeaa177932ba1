-- The conditions on the values of an attribute besides its type, as members of an object: required, unique, enum, pattern, minimum and
-- maximum. A rule that the attribute does not have is absent.
alter table attributes add column rules jsonb not null default '{}';
