import fc from 'fast-check'
import { padded } from '../texts.ts'
import type { Body, StackKey, Values } from './model.ts'

/** Selects the entity of a command: by name, or by its index among all entities ever created in the stack, deleted ones included. */
export type Selector = { name: string } | { nth: number }
export type ItemOperation = {
  op: 'create' | 'put' | 'patch' | 'upsert' | 'delete'
  selector: Selector
  body: Body
  if_match?: string
}

/** One step of a sequence. It is plain data, so that fast-check can shrink and print it. `organization` is the index of one of two. */
export type Command = { organization: 0 | 1; stack: StackKey } & (
  | ({ kind: 'write'; strict: boolean } & ItemOperation)
  | { kind: 'batch'; atomic: boolean; operations: ItemOperation[] }
  | { kind: 'read'; selector: Selector }
  | { kind: 'list'; size: number; ascending: boolean }
  | { kind: 'filter'; filter: Values }
  | { kind: 'related'; selector: Selector; target: StackKey; direction: 'outgoing' | 'incoming' | 'both' }
  | { kind: 'declare'; isScoreDeclared: boolean }
  | { kind: 'consent type'; id: 2 | 4; active: boolean }
  | { kind: 'default'; id: 1 | 4 }
)

const names = ['a', 'b', 'c', 'ö/ü']
const name = fc.constantFrom(...names)
const selector: fc.Arbitrary<Selector> = fc.oneof(
  { weight: 3, arbitrary: name.map(name => ({ name })) },
  { weight: 1, arbitrary: fc.nat({ max: 5 }).map(nth => ({ nth })) },
)

const target = fc.oneof(
  padded(name),
  fc.constantFrom(7, '7', 1.5, true),
  name.map(external_id => ({ external_id })),
)
const unlinking = fc.constantFrom<unknown>(null, '', [], ' ', { external_id: null })
const linkEdit = fc.record(
  { $add: fc.array(target, { maxLength: 2 }), $remove: fc.array(fc.oneof(target, name), { maxLength: 2 }) },
  { requiredKeys: [], noNullPrototype: true },
)
const singleTarget = fc.oneof(
  { weight: 6, arbitrary: target },
  { weight: 1, arbitrary: unlinking },
  { weight: 1, arbitrary: fc.array(target, { maxLength: 2 }) },
  { weight: 1, arbitrary: linkEdit },
)
const targetList = fc.oneof(
  { weight: 4, arbitrary: fc.array(target, { maxLength: 3 }) },
  { weight: 3, arbitrary: linkEdit },
  { weight: 1, arbitrary: singleTarget },
)
const free = fc.constantFrom<unknown>(null, '', 'x', ' x ', 1, true, ['y '], { a: { b: ' z' } }, { a: null }, [], {
  $add: ['a'],
})

const optionalFields = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(model, { requiredKeys: [], noNullPrototype: true })
const mostly = <T>(values: fc.Arbitrary<T>, often: T) =>
  fc.oneof({ weight: 7, arbitrary: fc.constant(often) }, { weight: 1, arbitrary: values })

const peopleValues = optionalFields<Values>({
  city: free,
  score: fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 0, max: 3 }) }, { weight: 1, arbitrary: free }),
  referrer: singleTarget,
  friends: targetList,
  bought: targetList,
})
const valuesOfStack: Record<StackKey, fc.Arbitrary<Values>> = {
  people: peopleValues,
  orders: optionalFields<Values>({ total: free, buyer: singleTarget }),
  visits: optionalFields<Values>({ page: free, visitor: singleTarget }),
}

const flag = fc.constantFrom(true, false, null)
const consentEntry = fc.record(
  {
    consent_type_id: fc.constantFrom(1, 1, 2, 2, 4, 4, 3, 9),
    channel: fc.constantFrom('email', 'sms'),
    state: fc.boolean(),
  },
  { noNullPrototype: true },
)

function bodyOf(stack: StackKey): fc.Arbitrary<Body> {
  const rename = { external_id: fc.oneof(padded(name), fc.constant(null)) }
  const attribute_values = fc.oneof(
    { weight: 7, arbitrary: valuesOfStack[stack] },
    { weight: 1, arbitrary: fc.constant(null) },
  )
  if (stack !== 'people')
    return fc.oneof(optionalFields<Body>({ attribute_values }), optionalFields<Body>({ ...rename, attribute_values }))
  const profile = {
    first_name: fc.constantFrom('Ada', ' Ada\u2003', '', null),
    email: fc.constantFrom('ada@example.org', ' ada@example.org', null, 'ada@example.org', 'none'),
    push_notification_consent: flag,
    attribute_values,
  }
  const answers = { email_consent: flag, sms_consent: flag, consents: fc.array(consentEntry, { maxLength: 2 }) }
  return fc.oneof(
    optionalFields<Body>(profile),
    optionalFields<Body>({ ...profile, ...rename }),
    optionalFields<Body>({ ...answers, attribute_values }),
  )
}

function operationOf(stack: StackKey): fc.Arbitrary<ItemOperation> {
  const body = bodyOf(stack)
  const if_match = mostly(fc.constantFrom<string | undefined>('*', '"1"', '"2"'), undefined)
  const op = fc.constantFrom<ItemOperation['op']>('create', 'create', 'put', 'patch', 'patch', 'upsert', 'delete')
  return fc
    .record({ op, selector, body, if_match }, { noNullPrototype: true })
    .map(({ if_match, ...rest }) => (if_match ? { ...rest, if_match } : rest))
}

const filter = fc.oneof(
  name.map(external_id => ({ external_id })),
  fc.constantFrom(
    { state: 'placeholder' },
    { first_name: 'Ada' },
    { first_name: { $exists: false } },
    { sms_consent: true },
  ),
  fc.integer({ min: 0, max: 3 }).map(score => ({ 'attribute_values.score': { $gte: score } })),
  name.map(friend => ({ 'attribute_values.friends': friend })),
  fc.constant({ 'attribute_values.referrer': { $some: { first_name: 'Ada' } } }),
)

const stack = fc.constantFrom<StackKey>('people', 'people', 'people', 'orders', 'visits')
const organization = fc.constantFrom<0 | 1>(0, 1)
const ofKind = <T>(kind: T) => ({ organization, kind: fc.constant(kind) })
const plain = { noNullPrototype: true }

const write = stack.chain(stack =>
  fc
    .record(
      {
        ...ofKind('write' as const),
        stack: fc.constant(stack),
        strict: mostly(fc.constant(true), false),
        operation: operationOf(stack),
      },
      plain,
    )
    .map(({ operation, ...rest }) => ({ ...rest, ...operation })),
)
const batch = stack.chain(stack =>
  fc.record(
    {
      ...ofKind('batch' as const),
      stack: fc.constant(stack),
      atomic: fc.boolean(),
      operations: fc.array(operationOf(stack), { maxLength: 5 }),
    },
    plain,
  ),
)
const peopleStack = fc.constant<StackKey>('people')

/** Generates commands of two organizations that have the same definitions and use the same names. */
export const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 12, arbitrary: write },
  { weight: 2, arbitrary: batch },
  { weight: 2, arbitrary: fc.record({ ...ofKind('read' as const), stack, selector }, plain) },
  {
    weight: 1,
    arbitrary: fc.record(
      { ...ofKind('list' as const), stack, size: fc.integer({ min: 1, max: 4 }), ascending: fc.boolean() },
      plain,
    ),
  },
  { weight: 1, arbitrary: fc.record({ ...ofKind('filter' as const), stack: peopleStack, filter }, plain) },
  {
    weight: 2,
    arbitrary: fc.record(
      {
        ...ofKind('related' as const),
        stack,
        selector,
        target: stack,
        direction: fc.constantFrom('outgoing' as const, 'incoming' as const, 'both' as const),
      },
      plain,
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({ ...ofKind('declare' as const), stack: peopleStack, isScoreDeclared: fc.boolean() }, plain),
  },
  {
    weight: 1,
    arbitrary: fc.record(
      {
        ...ofKind('consent type' as const),
        stack: peopleStack,
        id: fc.constantFrom(2 as const, 4 as const),
        active: fc.boolean(),
      },
      plain,
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record(
      { ...ofKind('default' as const), stack: peopleStack, id: fc.constantFrom(1 as const, 4 as const) },
      plain,
    ),
  },
)
