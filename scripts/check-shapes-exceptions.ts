/** A statement that may break a rule, and the reason. */
export type Exception = { rule: string; statement: string; reason: string }

const except = (rule: string, statements: string[], reason: string): Exception[] =>
  statements.map(statement => ({ rule, statement, reason }))

/** The statements that may break a rule. The list shrinks: an exception that no statement needs any more is a violation. */
export const exceptions: Exception[] = [
  ...except(
    'one organization',
    [
      ...['list_unfilled', 'read_versions', 'find_news', 'read_heads', 'read_follower_lag', 'list_failing_followers'],
      ...['list_organizations_with_webhooks', 'read_webhook_states', 'list_failing_webhooks', 'count_ledger_entries'],
      ...['list_organizations_with_unfinished_erasures', 'delete_expired_sessions', 'delete_expired_codes'],
    ],
    'Background tasks, metrics and kith doctor look at all organizations.',
  ),
  ...except(
    'one organization',
    ['read_sequences'],
    'One look at a standby serves the reads of all organizations that wait.',
  ),
  ...except(
    'insert is main',
    ['apply_changes'],
    'In two statements a PATCH costs PostgreSQL 10 % more CPU time. Citus runs store_changes and insert_changes.',
  ),
  ...except('insert knows its shard', ['apply_changes'], 'As above.'),
  ...except(
    'no copy in',
    ['make_entities', 'append_changes'],
    'COPY takes half the time of an INSERT of 1,024 rows. Citus runs insert_entities and insert_changes.',
  ),
]
