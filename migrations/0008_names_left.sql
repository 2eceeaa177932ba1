-- An entity that takes a name which another has left, by a deletion or a rename, goes on from the version that one had then: an
-- If-Match that was read of the one before must not hold for it. The change log has those versions; this finds them by name.
create index changes_names_left on changes (organization_id, stack_id, ((before->>'external_id') collate "C"), version)
  where before->>'external_id' is not null;
