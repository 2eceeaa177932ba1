-- An entity can take an external_id that another one has left by a deletion or a rename. Its version then continues from the
-- version of that entity, because an If-Match of the earlier entity must not match the new one. The change log has these
-- versions, and this index finds them by external_id.
create index changes_names_left on changes (organization_id, stack_id, ((before->>'external_id') collate "C"), version)
  where before->>'external_id' is not null;
