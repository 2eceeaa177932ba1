import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { searchFollower } from '../../src/entities/indexes/search-index.ts'
import { jobsFollower } from '../../src/jobs/run-jobs.ts'
import { defaultLimits } from '../../src/process/config.ts'
import { segmentFollower } from '../../src/segments/segment-follower.ts'
import { signIn } from '../../test/support/browser-session.ts'
import { follow, startFollowing } from '../../test/support/followers.ts'
import { startSealing } from '../../test/support/ledger.ts'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { useOwnService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'
import { createClient } from '../index.ts'
import { moduleOf, readDocument, readExamples, runExample } from './examples.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const examples = readExamples()

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
let receiver: Receiver
let stopSealing: () => Promise<void>
let stopFollowing: () => Promise<void>
beforeAll(async () => {
  receiver = await startReceiver()
  stopSealing = startSealing(service)
  const jobs = jobsFollower({ originName: 'kith.test', limits: defaultLimits })
  stopFollowing = startFollowing(service.db, [jobs, segmentFollower()])
})
afterAll(async () => {
  await stopSealing?.()
  await stopFollowing?.()
  await receiver.close()
})

/** An organization with two stacks, two people, an order and a webhook, in which every example runs. */
async function openShop() {
  const { key, token } = await createShop(
    service,
    'orders',
    { key: 'visits', kind: 'item' },
    { key: 'orders', owner: 'people', type: 'stack', target_stack: 'orders', cardinality: 'many' },
    'referrer',
    'buyer',
    { key: 'total', owner: 'orders', type: 'number' },
  )
  const client = createClient({ url: service.address, token })
  await client.people.create({ external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace' })
  await client.people.create({ external_id: 'grace', first_name: 'Grace', last_name: 'Hopper' })
  await client.stack('orders').create({ external_id: 'o-1', attribute_values: { total: 10, buyer: 'ada' } })
  await client.webhooks.create({ url: receiver.url, events: ['person.*'] })
  await signIn(service, { key }, 'people:read', 'operator')
  return { client, environment: { KITH_URL: service.address, KITH_TOKEN: token } }
}

describe('every example of the documentation', () => {
  it.each(examples.map(example => [example.location, example] as const))(
    'prints the values of its comments: %s',
    async (_, example) => {
      const { client, environment } = await openShop()
      if (example.code.includes('.search(')) await follow(service.db, [searchFollower()])
      const { printed, expected } = await runExample(example, client, environment)
      expect(expected.length).toBeGreaterThan(0)
      // A console.log inside a loop prints its line several times.
      expect([...new Set(printed)]).toEqual([...new Set(expected)])
    },
  )

  it('compiles', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kith-examples-'))
    try {
      const compilerOptions = {
        types: ['node'],
        typeRoots: [join(root, 'node_modules/@types')],
        paths: { '@kith/client': [join(root, 'client/index.ts')] },
      }
      const settings = { extends: join(root, 'tsconfig.json'), compilerOptions, include: [directory] }
      await writeFile(join(directory, 'package.json'), '{"type":"module"}')
      await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(settings))
      const documents = ['docs/changes.md', 'docs/webhooks.md'].map(readDocument)
      for (const [index, example] of [...examples, ...documents].entries())
        await writeFile(join(directory, `${index}.ts`), `// ${example.location}\n${moduleOf(example)}`)
      const compiler = join(root, 'node_modules/typescript/bin/tsc')
      const compiled = await promisify(execFile)(process.execPath, [compiler, '-p', directory]).catch(error => error)
      expect(compiled.stdout).toBe('')
    } finally {
      await rm(directory, { recursive: true })
    }
  })
})

/** The names of the methods of an object, inherited ones included. */
function methodsOf(each: object): string[] {
  const parent = Object.getPrototypeOf(each)
  if (parent === null || parent === Object.prototype) return []
  return [...Object.getOwnPropertyNames(parent).filter(name => name !== 'constructor'), ...methodsOf(parent)]
}

describe('every public method', () => {
  it('has an example', async () => {
    const { client } = await openShop()
    const all = examples.map(({ code }) => code).join('\n')
    const { people, consents, schema, changes, webhooks, erasures } = client
    const { stacks, attributes } = schema
    const callers = [client.sessions, client.access, client.access.clients]
    const groups = [
      consents,
      schema,
      stacks,
      attributes,
      changes,
      webhooks,
      erasures,
      client.segments,
      client.operations,
    ]
    const methods = [client, people, people.list(), ...groups, ...callers].flatMap(methodsOf)
    expect(methods.filter(name => !all.includes(`.${name}(`))).toEqual([])
  })
})
