-- Search. kith computes the words of people and records behind the writes, and compares them in plain B-trees: no extension of
-- PostgreSQL is needed, and a search reads no index entry of another organization.

-- Whether a search finds the records or people by the words of the attribute.
alter table attributes add column searchable boolean not null default false;

-- The index of the people (stack 0), or of a stack with searchable attributes. It has the words under `keys`. While it is not ready,
-- it has the entities up to `after_id`: `indexed` of about `total`.
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

-- The distinct words of an entity, each between two spaces.
create table search_documents (
  organization_id integer not null,
  stack_id integer not null,
  entity_id uuid not null,
  words text collate "C" not null,
  primary key (organization_id, stack_id, entity_id)
);
alter table search_documents alter column organization_id set (n_distinct = 1);

-- The entities of each word, in order.
create table search_words (
  organization_id integer not null,
  stack_id integer not null,
  word text collate "C" not null,
  entity_id uuid not null,
  primary key (organization_id, stack_id, word, entity_id)
);
alter table search_words alter column organization_id set (n_distinct = 1);

-- What similar words have in common: trigrams, and what remains of a short word without one letter. Each distinct word is here once.
create table search_features (
  organization_id integer not null,
  stack_id integer not null,
  feature text collate "C" not null,
  word text collate "C" not null,
  primary key (organization_id, stack_id, feature, word)
);
alter table search_features alter column organization_id set (n_distinct = 1);
