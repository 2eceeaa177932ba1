/** A statement that may break a rule, and the reason. */
export type Exception = { rule: string; statement: string; reason: string }

const except = (rule: string, statements: string[], reason: string): Exception[] =>
  statements.map(statement => ({ rule, statement, reason }))

/** The statements that may break a rule. The list shrinks: an exception that no statement needs any more is a violation. */
export const exceptions: Exception[] = [
  ...except(
    'one organization',
    [
      ...[
        'read_versions',
        'digest_versions',
        'list_organizations_with_expired_keys',
        'find_news',
        'find_news_of',
        'read_heads',
        'read_follower_lag',
        'list_failing_followers',
        'read_index_sample',
      ],
      ...['list_organizations_with_webhooks', 'read_webhook_states', 'list_failing_webhooks', 'count_ledger_entries'],
      ...['find_unsealed', 'find_retention', 'find_access_work'],
      ...[
        'list_organizations_with_unfinished_erasures',
        'list_unfinished_merges',
        'delete_expired_sessions',
        'delete_expired_codes',
        'delete_expired_tokens',
      ],
      'find_outdated_sql_views',
      ...['find_wrapped_link_keys', 'find_wrapped_webhooks', 'find_wrapped_sources'],
    ],
    'Background tasks, metrics and kith doctor look at all organizations.',
  ),
  ...except(
    'one organization',
    ['find_clients', 'find_live_sessions', 'find_tokens', 'mark_tokens_used'],
    'A process keeps the clients and tokens of many organizations fresh together.',
  ),
  ...except(
    'one organization',
    ['select s.schema_name, s.retired from pub', "update public.sql_views set retired = '{"].map(text => `"${text}"`),
    'A migration changes the tables of all organizations.',
  ),
  ...except(
    'one organization',
    ['read_sequences'],
    'One look at a standby serves the reads of all organizations that wait.',
  ),
  ...except(
    'counted locations',
    ['delete_addresses'],
    'The COPY that follows has the same keys: it fails if one of the rows is still there.',
  ),
]
