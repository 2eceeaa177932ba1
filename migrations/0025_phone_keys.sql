-- A change of default_country computes the keys of the stored phones anew, in the background. So does this migration, once for each
-- organization with settings: their country may be newer than the keys.

alter table organization_settings add column phone_keys_after uuid;
comment on column organization_settings.phone_keys_after is
  'While the keys of stored phones follow a change of default_country: the person up to whom they do. Null: all do.';
update organization_settings set phone_keys_after = '00000000-0000-0000-0000-000000000000';

comment on table segment_checks is
  'An entity that linked to an erased one, or a person whose phone has another key, and is tested again because the log does not tell.';
