import { issueToken } from '../../src/auth/token.ts'
import { openDatabase } from '../../src/db/db.ts'
import { inDatabase } from '../database.ts'
import type { Side } from '../side.ts'

/** Adds organizations `o1` … `o<count>`, as `kith org create` does, each with one person `p`. */
export function addOrganizations({ service }: Side, count: number): Promise<void> {
  return inDatabase(service.url, async client => {
    for (const text of addingTexts) await client.query(text, text.includes('$1') ? [count] : [])
    await client.query('vacuum (analyze)')
  })
}

const added = `organizations where key ~ '^o\\d+$'`
const addingTexts = [
  `insert into organizations (key) select 'o' || n from generate_series(1, $1::integer) n`,
  `insert into change_heads (organization_id, sequence) select id, 1 from ${added}`,
  `insert into tombstone_keys (organization_id, secret) select id, sha256(uuid_send(gen_random_uuid())) from ${added}`,
  `insert into consent_types (organization_id, id, key, name, state, mandatory, default_state, channels, created_at, updated_at, version)
   select id, 1, 'marketing', 'Marketing', 'active', false, false, '[]', now(), now(), 1 from ${added}`,
  `insert into entities (organization_id, stack_id, id, external_id, active, version, created_at, updated_at)
   select id, 0, gen_random_uuid(), 'p', true, 1, now(), now() from ${added}`,
  `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, after, actor, request_id)
   select e.organization_id, 1, now(), 'entity', 0, e.id, 'create', 1, '{"external_id": "p"}', 'bench', ''
   from entities e join organizations o on o.id = e.organization_id where o.key ~ '^o\\d+$'`,
]

/** A token for each of the organizations `o1` … `o<count>`. */
export async function organizationTokens({ service }: Side, count: number): Promise<string[]> {
  const db = openDatabase(service.url, { connections: 1, statementTimeoutMs: 10_000 })
  const request = {
    subject: 'bench',
    scope: 'people:read people:write records:write schema:write webhooks:write',
    ttlSeconds: 86_400,
  }
  try {
    const tokens: string[] = []
    for (let n = 1; n <= count; n += 1) tokens.push(await issueToken(db, { ...request, organizationKey: `o${n}` }))
    return tokens
  } finally {
    await db.close()
  }
}
