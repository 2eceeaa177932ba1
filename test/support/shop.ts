import { beforeAll, beforeEach } from 'vitest'
import type { Client } from '../../client/index.ts'
import { createAttribute } from '../../src/attributes/attributes.ts'
import type { AttributeBody } from '../../src/attributes/schema.ts'
import { createConsentType } from '../../src/consents/consent-types.ts'
import type { ConsentTypeBody } from '../../src/consents/schema.ts'
import { contextOf } from '../../src/db/context.ts'
import type { StackBody } from '../../src/stacks/schema.ts'
import { createStack } from '../../src/stacks/stacks.ts'
import type { Organization, Reply, Send, Service } from './service.ts'

const stacks = {
  companies: { key: 'companies', kind: 'item' },
  orders: { key: 'orders', kind: 'item' },
  visits: { key: 'visits', kind: 'event' },
} as const satisfies Record<string, StackBody>

/** The definitions that tests share, by key. */
const shared = {
  ...stacks,
  referrer: { key: 'referrer', owner: 'people', type: 'person' },
  friends: { key: 'friends', owner: 'people', type: 'person', cardinality: 'many' },
  employer: { key: 'employer', owner: 'people', type: 'stack', target_stack: 'companies' },
  bought: { key: 'bought', owner: 'people', type: 'stack', target_stack: 'orders', cardinality: 'many' },
  buyer: { key: 'buyer', owner: 'orders', type: 'person' },
  visitor: { key: 'visitor', owner: 'visits', type: 'person' },
  city: { key: 'city', owner: 'people', type: 'text', indexed: true },
  score: { key: 'score', owner: 'people', type: 'number', indexed: true },
} as const satisfies Record<string, StackBody | AttributeBody>

type NewDefinition = StackBody | AttributeBody | ConsentTypeBody

/** The key of a shared definition, or a definition of one test. A shared stack need not be named before an attribute that uses it. */
export type Definition = keyof typeof shared | NewDefinition

/** An organization of a test. Its functions and its client may be taken out of it: they go on with the new organization after `renew`. */
export type Shop = Organization & {
  /** Sends a request that must succeed. Returns the data of the response. */
  ok(...request: Parameters<Send>): Promise<Reply['body']['data']>
  /** Reads the number of the newest change. */
  head(): Promise<number>
  /** Replaces the organization by a new one with these definitions, for the next run of a property. */
  renew(...definitions: Definition[]): Promise<void>
}

/** A new organization with these definitions before each test of the file or the `describe`. */
export function useShop(service: Service, ...definitions: Definition[]): Shop {
  const shop = emptyShop(service)
  beforeEach(() => shop.renew(...definitions))
  return shop
}

/** One organization with these definitions for all tests of the file or the `describe`. */
export function useSharedShop(service: Service, ...definitions: Definition[]): Shop {
  const shop = emptyShop(service)
  beforeAll(() => shop.renew(...definitions))
  return shop
}

/** Creates an organization with these definitions. */
export async function createShop(service: Service, ...definitions: Definition[]): Promise<Shop> {
  const shop = emptyShop(service)
  await shop.renew(...definitions)
  return shop
}

function emptyShop(service: Service): Shop {
  let current: Organization
  const send: Send = (...request) => current.send(...request)
  const shop = {
    send,
    client: new Proxy({} as Client, { get: (_, name) => memberOf(current.client, name) }),
    ok: (...request) => dataOf(send(...request)),
    head: () => readHead(service, current.id),
    renew: async (...definitions) => {
      current = await service.organization()
      const { id, key, token } = current
      Object.assign(shop, { id, key, token })
      await declareInProcess(service, id, definitions)
    },
  } as Shop
  return shop
}

/** The member of a client. Its methods keep the client as their `this`. */
function memberOf(client: Client, name: string | symbol): unknown {
  const member = Reflect.get(client, name)
  return typeof member === 'function' ? member.bind(client) : member
}

/**
 * Declares the definitions without HTTP. With 'referrer', 'friends' and 'employer', the organization takes 3 ms of processor time, where
 * four requests take 10 ms.
 */
async function declareInProcess({ db, config }: Service, organization_id: number, definitions: Definition[]) {
  const author = { ...contextOf(db, organization_id), actor: 'tests', request_id: 'tests', limits: config.limits }
  for (const definition of withStacks(definitions))
    if ('channels' in definition) await createConsentType(author, definition)
    else if ('kind' in definition) await createStack(author, definition)
    else await createAttribute(author, definition)
}

/** Declares the definitions over HTTP, where the service is in another process. */
export async function declare(send: Send, ...definitions: Definition[]): Promise<void> {
  for (const definition of withStacks(definitions)) {
    const kind = 'channels' in definition ? 'consent-types' : 'kind' in definition ? 'stacks' : 'attributes'
    await expectSuccess(send('POST', `/v1/schema/${kind}`, definition))
  }
}

/** The definitions, each shared stack before the first attribute that belongs or leads to it. */
function withStacks(given: Definition[]): NewDefinition[] {
  const all: NewDefinition[] = []
  for (const each of given) {
    const definition: NewDefinition = typeof each === 'string' ? shared[each] : each
    if ('owner' in definition)
      for (const stack of [definition.owner, definition.target_stack]) if (isShared(stack)) addStack(stacks[stack])
    if ('kind' in definition) addStack(definition)
    else all.push(definition)
  }
  return all

  function addStack(stack: StackBody) {
    if (!all.some(other => 'kind' in other && other.key === stack.key)) all.push(stack)
  }
}

const isShared = (stack: unknown): stack is keyof typeof stacks => Object.hasOwn(stacks, stack as string)

/** Waits for a response, which must be a success. */
export async function expectSuccess(replying: Promise<Reply>): Promise<Reply> {
  const reply = await replying
  if (reply.status >= 300) throw new Error(`${reply.status} ${JSON.stringify(reply.body)}`)
  return reply
}

/** Waits for a response, which must be a success. Returns its data. */
export const dataOf = async (replying: Promise<Reply>): Promise<Reply['body']['data']> =>
  (await expectSuccess(replying)).body.data

/** Reads the number of an organization's newest change. */
export async function readHead({ sql }: Pick<Service, 'sql'>, organization_id: number): Promise<number> {
  const text = 'select sequence from change_heads where organization_id = $1'
  const [head] = await sql<{ sequence: number }>(text, [organization_id])
  return Number(head!.sequence)
}
