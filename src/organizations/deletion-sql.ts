import { type Statement, statement } from '../db/db.ts'

/** $1: key. Marks an organization as deleted. No statement finds it by its key from then on. */
export const markDeletedSql = statement(
  'mark_organization_deleted',
  'update organizations set deleted_at = now() where key = $1 and deleted_at is null',
)

/** $1: key. A deleted organization, and the seconds since its deletion. */
export const findDeletedSql = statement(
  'find_deleted_organization',
  `select id, extract(epoch from now() - deleted_at)::float8 as seconds from organizations
   where key = $1 and deleted_at is not null`,
)

/**
 * The tables with rows of organizations, in the order of their deletion. The tables in which background work finds
 * tasks come first, then the head, because without it no transaction can change the organization. The tables after the
 * head cannot get new rows.
 */
export const organizationTables = [
  ...['erasures', 'merges', 'fills', 'webhooks', 'followers', 'sql_views', 'change_heads'],
  ...[
    'sessions',
    'sign_in_codes',
    'accounts',
    'clients',
    'tokens',
    'link_keys',
    'idempotency_keys',
    'organization_settings',
  ],
  ...['webhook_deliveries', 'segment_changes', 'segment_checks', 'segment_members', 'segments', 'roles'],
  ...['retention_notices', 'retention_runs', 'retention_rules', 'person_holds', 'set_aside_people'],
  ...['search_words', 'search_features', 'search_documents', 'search_indexes', 'sort_indexes', 'terms'],
  ...['address_answers', 'deliverability', 'deliverability_sources', 'deliverability_tokens'],
  ...['name_versions', 'aliases', 'links', 'consent_history', 'consent_texts', 'consent_types', 'entities'],
  ...['attributes', 'stacks', 'ledger_tiles', 'ledger_entries', 'ledgers', 'erased_answers', 'changes'],
  ...[
    'imports',
    'import_mappings',
    'job_refusals',
    'jobs',
    'tombstones',
    'tombstone_keys',
    'access_index',
    'access_batches',
  ],
] as const

export type OrganizationTable = (typeof organizationTables)[number]

/** $2: limit. Deletes rows of a table, and returns their number. */
export const deleteRowsSql = Object.fromEntries(
  organizationTables.map(table => [
    table,
    statement(
      `delete_rows_of_${table}`,
      `with gone as (
         delete from ${table} t where t.organization_id = $1 and t.ctid = any(array(
           select k.ctid from ${table} k where k.organization_id = $1 limit $2
         )) returning 1
       ) select count(*)::integer as count from gone`,
    ),
  ]),
) as Record<OrganizationTable, Statement>
