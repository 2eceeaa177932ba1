import pg from 'pg'
import type { LoggedLinks } from '../../src/changes/link-names.ts'
import type { Profile } from '../../src/entities/entity-row.ts'

export type Change = {
  sequence: number
  subject: string
  stack_id: number
  entity_id: string
  operation: 'create' | 'update' | 'delete' | 'restore'
  version: number
  /** The previous values; null for a create and for a restore. */
  before: Record<string, unknown> | null
  after: Record<string, unknown>
  links: LoggedLinks | null
  request_id: string
}

export type StoredEntity = {
  stack_id: number
  id: string
  external_id: string | null
  active: boolean
  version: number
  created_at: Date
  updated_at: Date
  attributes: Record<string, unknown>
  answers: Record<string, { state: boolean }>
} & Profile

export type StoredLink = { source_id: string; attribute_id: number; target_id: string }
export type ConsentAnswer = {
  person_id: string
  version: number
  consent_type_id: number
  channel: string
  previous_state: boolean | null
  state: boolean
  request_id: string
  superseded: boolean
  pending: boolean
}
export type AttributeDefinition = {
  id: number
  owner_stack_id: number
  key: string
  cardinality: string
  target_stack_id: number | null
  index_id: number | null
}

/** All rows of an organization from one snapshot, read directly from the database and without its indexes. */
export type Stored = {
  head: number
  log_id: string
  changes: Change[]
  entities: StoredEntity[]
  links: StoredLink[]
  answers: ConsentAnswer[]
  terms: string[]
  attributes: AttributeDefinition[]
  stacks: { id: number; key: string }[]
  sort_indexes: { stack_id: number; field: string; index_id: number }[]
  keys: number
}

const statements = {
  changes: 'select *, sequence::integer as sequence from changes where organization_id = $1 order by changes.sequence',
  entities: 'select * from entities where organization_id = $1 order by id',
  links: 'select * from links where organization_id = $1 order by source_id, attribute_id, position',
  answers: 'select * from consent_history where organization_id = $1 order by version',
  attributes: 'select * from attributes where organization_id = $1',
  stacks: 'select id, key from stacks where organization_id = $1',
  sort_indexes: 'select stack_id, field, index_id from sort_indexes where organization_id = $1',
} as const

export async function readStored(databaseUrl: string, organization_id: number): Promise<Stored> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    // Sequential scans read the tables themselves. A damaged index could hide a lost or duplicate row.
    await client.query('begin isolation level repeatable read read only')
    await client.query(
      'set local enable_indexscan = off; set local enable_bitmapscan = off; set local enable_indexonlyscan = off',
    )
    const rows = async (text: string) => (await client.query(text, [organization_id])).rows
    const [{ head, log_id }] = await rows(
      'select sequence::integer as head, log_id from change_heads where organization_id = $1',
    )
    const [{ keys }] = await rows('select count(*)::integer as keys from idempotency_keys where organization_id = $1')
    const terms = await rows(
      `select index_id || ' ' || value || ' ' || entity_id as term from terms where organization_id = $1`,
    )
    const tables: Record<string, unknown> = {}
    for (const [name, text] of Object.entries(statements)) tables[name] = await rows(text)
    return { ...(tables as unknown as Stored), head, log_id, keys, terms: terms.map(({ term }) => term) }
  } finally {
    await client.end()
  }
}
