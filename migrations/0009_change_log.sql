-- The change log can be read. log_id names the numbering of an organization's changes: a database that was restored from a
-- backup gives out the numbers after the backup a second time, and then gets a new log_id.
alter table change_heads add column log_id uuid not null default gen_random_uuid();

-- The changes of one entity, for its history and for its state at a past version.
create unique index changes_entity on changes (organization_id, entity_id, version) where entity_id is not null;

-- A restore brings back a deleted entity. The rows that exist satisfy the narrower checks, so they are not read again.
alter table changes
  drop constraint changes_operation_check,
  drop constraint changes_subject_check,
  add constraint changes_operation_check check (operation in ('create', 'update', 'delete', 'restore')) not valid,
  add constraint changes_subject_check
    check (subject in ('entity', 'stack', 'attribute', 'consent_type', 'webhook')) not valid;
