-- People who look like one and whom somebody has set aside as not the same: the search for duplicates leaves their pairs out.

create table set_aside_people (
  organization_id integer not null,
  set_aside_id uuid not null,
  person_id uuid not null,
  actor text not null,
  at timestamptz not null,
  primary key (organization_id, set_aside_id, person_id)
);
create index set_aside_people_person on set_aside_people (organization_id, person_id, set_aside_id);
alter table set_aside_people alter column organization_id set (n_distinct = 1);
comment on table set_aside_people is 'One of several people of whom somebody said that no two are the same.';
comment on column set_aside_people.set_aside_id is 'What was said at once, and is taken back at once.';
comment on column set_aside_people.person_id is
  'The person as it was then. A merge leads to the survivor, and an unmerge back, without a change here.';
comment on column set_aside_people.actor is 'Who said it.';
