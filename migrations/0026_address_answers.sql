-- A refusal holds for the address that it was given for, whoever has the address (decision 79).

create table address_answers (
  organization_id integer not null,
  channel text not null check (channel in ('email', 'sms')),
  address text collate "C" not null,
  consent_type_id integer not null,
  state boolean not null,
  answered_at timestamptz not null,
  text_version integer not null,
  method_rank smallint not null,
  sequence bigint not null,
  person_id uuid,
  primary key (organization_id, channel, address, consent_type_id)
) with (fillfactor = 70);
create index address_answers_person on address_answers (organization_id, person_id);
comment on table address_answers is
  'The answer of an address to a purpose: the last one that anybody gave who had the address then, in the order of answers.';
comment on column address_answers.address is
  'The address as email_key or mobile_key has it. After the erasure of the people who had it, `erased:` and its keyed hash, until a write gives it to somebody again.';
comment on column address_answers.answered_at is 'When the answer was collected. -infinity: nobody knows when.';
comment on column address_answers.method_rank is 'The rank of the method: a higher one stands over a lower one at equal times.';
comment on column address_answers.sequence is 'The number of the change that stored the answer.';
comment on column address_answers.person_id is 'Who gave the answer. Null after an erasure.';

-- A follower of the change log adds the answers that were given before, and ends.
insert into followers (organization_id, name)
select h.organization_id, 'address_answers' from change_heads h
where exists (select from consent_history a where a.organization_id = h.organization_id);
