-- Numbers the changes of a set during a COPY that is sent before the client knows the numbers. The transaction that has locked
-- the organization's head sets the sequence to the head's number, and the session caches the next 4096 numbers. Each row of the
-- COPY then takes the next cached number, regardless of other sessions. Its value has no other use, so the sequence is unlogged.
create unlogged sequence change_numbers minvalue 0 cache 4096 owned by changes.sequence;
alter table changes alter column sequence set default nextval('change_numbers');
