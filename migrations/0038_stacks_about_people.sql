-- A stack says what a person's page tells of its records, and which of its relationships leads to the person with whom they are erased.

alter table stacks add column summary jsonb, add column erased_with text collate "C";

comment on column stacks.summary is
  'What sums up the records of a person: {"person": key, "time": key or null, "measures": [{"op", "key"}]}. Null: nothing.';
comment on column stacks.erased_with is
  'The key of the relationship to the person with whom a record is erased. Null: records stay unless they are asked for.';
