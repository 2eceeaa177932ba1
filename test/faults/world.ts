import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { createAuthenticator } from '../../src/auth/authenticator.ts'
import { loadOrCreateKeys } from '../../src/auth/keys/keys.ts'
import { openDatabase } from '../../src/db/db.ts'
import { openMasterKeys } from '../../src/keys-at-rest/key-file.ts'
import { createOrganization } from '../../src/organizations/organizations.ts'
import { loadConfig } from '../../src/process/config.ts'
import { query } from '../support/embedded-service.ts'
import { senderTo } from '../support/process.ts'
import { allScopes, type Send } from '../support/service.ts'

/** The organization of one round, with the definitions that the mix uses. */
export type World = { organization_id: number; token: string; databaseUrl: string }

/**
 * Creates the organization in the database and declares its definitions through kith at `address`. `dataDir` is the folder of its embedded
 * database, which has the master key.
 */
export async function makeWorld(databaseUrl: string, address: string, dataDir?: string): Promise<World> {
  const masterKeys = dataDir === undefined ? undefined : openMasterKeys(loadConfig({ KITH_DATA_DIR: dataDir }))
  const db = openDatabase(databaseUrl, {
    connections: 1,
    statementTimeoutMs: 10_000,
    ...(masterKeys && { masterKeys }),
  })
  try {
    const key = `round_${randomUUID().slice(0, 8)}`
    const { id } = await createOrganization(db, key)
    const authenticator = createAuthenticator({ db, keys: await loadOrCreateKeys(db), config: loadConfig({}) })
    const tokenRequest = { organizationKey: key, scope: allScopes, subject: 'faults', ttlSeconds: 3_600 }
    const token = await authenticator.issueToken(tokenRequest)
    await declareDefinitions(senderTo(address, token))
    return { organization_id: id, token, databaseUrl }
  } finally {
    await db.close()
  }
}

const stacks = [
  { key: 'orders', kind: 'item' },
  { key: 'visits', kind: 'event' },
]
const attributes = [
  { key: 'referrer', owner: 'people', type: 'person' },
  { key: 'friends', owner: 'people', type: 'person', cardinality: 'many' },
  { key: 'owns', owner: 'people', type: 'stack', target_stack: 'orders', cardinality: 'many' },
  { key: 'tag', owner: 'people', type: 'text', indexed: true },
  { key: 'buyer', owner: 'orders', type: 'person' },
  { key: 'visitor', owner: 'visits', type: 'person' },
]
const newsConsentType = {
  key: 'news',
  name: 'News',
  channels: [
    { channel: 'email', is_default: false, double_opt_in: true },
    { channel: 'sms', is_default: false },
  ],
}

async function declareDefinitions(sendOnce: Send) {
  // A busy machine, or a new index, may need a moment.
  const send: Send = async (...request) => {
    for (;;) {
      const reply = await sendOnce(...request)
      if (reply.status !== 503) return reply
      await setTimeout(200)
    }
  }
  const replies = []
  for (const stack of stacks) replies.push(await send('POST', '/v1/schema/stacks', stack))
  for (const attribute of attributes) replies.push(await send('POST', '/v1/schema/attributes', attribute))
  replies.push(await send('POST', '/v1/schema/consent-types', newsConsentType))
  const refused = replies.find(({ status }) => status !== 201)
  if (refused) throw new Error(JSON.stringify(refused.body))
  for (const field of sortedFields) {
    const reply = await send('POST', '/v1/people/list', { sort: { field } })
    if (reply.status !== 200) throw new Error(JSON.stringify(reply.body))
  }
}

/** The fields that people are sorted by, so that every write of the round maintains their indexes. */
const sortedFields = ['external_id', 'created_at', 'updated_at', 'last_name', 'attribute_values.tag']

/**
 * Sets deadlock_timeout to 100 ms for new connections. The load has few names and many renames, so it deadlocks. The default of a second
 * would dominate the rounds.
 */
export const shortenDeadlockTimeout = (databaseUrl: string): Promise<unknown> =>
  query(databaseUrl, `alter database ${new URL(databaseUrl).pathname.slice(1)} set deadlock_timeout = '100ms'`)
