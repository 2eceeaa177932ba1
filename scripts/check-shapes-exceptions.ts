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
  // Cells are plain databases: an organization moves neither to Citus nor from it.
  ...except(
    'insert knows its shard',
    ['insert_moved_followers', 'insert_moved_head'],
    'A cell is a plain database, to which a move copies an organization.',
  ),
  ...except(
    'one organization',
    ['list_moves', 'delete_leftover', 'list_residents'],
    'They look at all organizations of a cell, or at what an interrupted creation has left there.',
  ),
  ...except('insert is main', ['delete_leftover'], 'A cell is a plain database.'),
  ...except('no stable update', ['retire_keys_like'], 'A cell is a plain database, to which keys are copied.'),
]
