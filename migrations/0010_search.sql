-- Search. kith computes the words of people and records behind the writes, and compares them in plain B-trees: no extension of
-- PostgreSQL is needed, and a search reads no index entry of another organization.

create table search_indexes (
  organization_id integer not null,
  stack_id integer not null,
  keys text[] not null,
  after_id uuid not null,
  indexed integer not null,
  total integer not null,
  is_ready boolean not null,
  primary key (organization_id, stack_id)
);
comment on table search_indexes is 'The search index of the people (stack 0), or of a stack with searchable attributes.';
comment on column search_indexes.keys is 'The keys of the attributes whose words the index has.';
comment on column search_indexes.after_id is 'The last entity that is indexed, while the index is not ready.';
comment on column search_indexes.total is 'About how many entities there are to index.';

create table search_documents (
  organization_id integer not null,
  stack_id integer not null,
  entity_id uuid not null,
  words text collate "C" not null,
  primary key (organization_id, stack_id, entity_id)
);
alter table search_documents alter column organization_id set (n_distinct = 1);
comment on table search_documents is 'The words of an entity.';
comment on column search_documents.words is 'The distinct words, each between two spaces.';

create table search_words (
  organization_id integer not null,
  stack_id integer not null,
  word text collate "C" not null,
  entity_id uuid not null,
  primary key (organization_id, stack_id, word, entity_id)
);
alter table search_words alter column organization_id set (n_distinct = 1);
comment on table search_words is 'An entity that has a word.';

create table search_features (
  organization_id integer not null,
  stack_id integer not null,
  feature text collate "C" not null,
  word text collate "C" not null,
  primary key (organization_id, stack_id, feature, word)
);
alter table search_features alter column organization_id set (n_distinct = 1);
comment on table search_features is 'A feature of a word, which similar words share.';
comment on column search_features.word is 'Each distinct word of a stack has its features once, however many entities have it.';
comment on column search_features.feature is 'A trigram, or what remains of a short word without one letter.';
