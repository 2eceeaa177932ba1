-- The leaves of answers that were erased before the ledger sealed them: the hash of an answer with a salt that nothing keeps. The
-- follower that seals puts them into the ledger in the place of the answers, and deletes them here.
create table erased_answers (
  organization_id integer not null,
  sequence bigint not null,
  consent_type_id integer not null,
  channel text not null check (channel in ('email', 'sms')),
  hash bytea not null check (length(hash) = 32),
  primary key (organization_id, sequence, consent_type_id, channel)
);
alter table erased_answers alter column organization_id set (n_distinct = 1);
