-- The numbers of a set's changes, for a COPY that begins before anybody outside knows them. Whoever holds the organization's
-- head sets it to the head's number and takes as many at once as it keeps in the session: from there on each row
-- of the COPY gets the next, and no other session has a say. Nobody reads what it holds otherwise, hence unlogged.
create unlogged sequence change_numbers minvalue 0 cache 4096 owned by changes.sequence;
alter table changes alter column sequence set default nextval('change_numbers');
