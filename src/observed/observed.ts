import { createAttribute } from '../attributes/attributes.ts'
import { type DefinitionCall, throwKeyTaken } from '../organizations/change-definitions.ts'
import {
  currentDefinitions,
  type Definitions,
  peopleKey,
  readScopeOf,
  stackIdOf,
} from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import type { HandlerResult } from '../route/result.ts'
import type { Scope } from '../route/scopes.ts'
import { throwBrokenRule } from '../values/errors.ts'
import { lastId } from '../values/formats.ts'
import { type DeclareBody, type ObservedKey, type ObservedQuery, type ObservedType, observedTypes } from './schema.ts'
import { countFittingSql, countObservedSql } from './sql.ts'

/** A sample has at most this many entities, and ends with the portion that reaches this time. */
const sample = { entities: 10_000, ms: 1_000 }
const portionSize = 1_000
/** The maximum number of counted keys of an owner. */
const maxKeys = 10_000
/** The maximum number of examples of entities with a key. */
const maxShownExamples = 3
/** A stream sends an empty line after this time, so that the client sees that the count continues. */
const beatMs = 1_000

/** The valid keys of definitions, as in the schema of a new attribute. */
export const declarableKey = /^[a-z][a-z0-9_]{0,62}$/

/** The reason why a key cannot be the key of an attribute, or undefined if it can. */
function undeclarable(key: string): string | undefined {
  if (declarableKey.test(key)) return undefined
  const reason = !/^[a-z]/.test(key)
    ? 'it does not begin with a letter from a to z'
    : /^[a-z0-9_]*$/.test(key)
      ? 'it is longer than 63 characters'
      : 'it has other characters than a to z, 0 to 9 and _'
  return `cannot be the key of an attribute: ${reason}. Write the values under another key.`
}

/** The id of the stack that an owner names. Throws a Fault of 400 for the value at `/owner`. */
const ownerIdOf = (definitions: Definitions, owner: string): number =>
  stackIdOf(definitions, owner) ?? throwBrokenRule('/owner', 'must be `people` or the key of a stack')

/**
 * Counts the stored values of an owner's entities under undeclared keys, the newest entities first. Answers with the
 * counts of a sample, or streams those of all entities. Throws a Fault of 400.
 */
export async function answerObserved(call: Call<ObservedQuery>): Promise<HandlerResult> {
  const { context, caller, body, signal } = call
  const { db, organization_id } = context
  const definitions = await currentDefinitions(context, signal)
  const stack_id = ownerIdOf(definitions, body.owner ?? peopleKey)
  const declared = [...(definitions.declared.get(stack_id)?.keys() ?? [])]
  const examples = caller.scopes.has(readScopeOf(stack_id)) ? maxShownExamples : 0
  const readPortion = async (before: string) => {
    const values = [organization_id, stack_id, before, portionSize, declared, maxKeys + 1, examples]
    return (await db.query<Portion>(countObservedSql, values, signal))[0]!
  }
  const untilMs = performance.now() + sample.ms
  const counts = countsOf(await readPortion(lastId))
  if (call.mediaType !== undefined) return { status: 200, stream: linesFrom(call, counts, readPortion) }
  while (counts.last !== null && counts.entities < sample.entities && performance.now() < untilMs)
    add(counts, await readPortion(counts.last))
  return { status: 200, data: { items: itemsOf(counts), ...endOf(counts) } }
}

/** The counts of a portion. `last` is the last identifier, from which the next portion continues. */
type Portion = { sequence: number; entities: number; last: string | null; keys: CountedKey[] }
type CountedKey = Omit<ObservedKey, 'declarable'>

/** The sums of all portions so far. `last` is null at the end. */
type Counts = Omit<Portion, 'keys'> & { keys: Map<string, CountedKey>; hasMoreKeys: boolean }

async function* linesFrom(
  { within }: Call<ObservedQuery>,
  counts: Counts,
  readPortion: (before: string) => Promise<Portion>,
): AsyncGenerator<string> {
  let sentMs = performance.now()
  for (let { last } = counts; last !== null; { last } = counts) {
    const before = last
    add(counts, await within(() => readPortion(before)))
    if (performance.now() - sentMs < beatMs) continue
    yield '\n'
    sentMs = performance.now()
  }
  yield [...itemsOf(counts), endOf(counts)].map(line => `${JSON.stringify(line)}\n`).join('')
}

function countsOf(portion: Portion): Counts {
  const counts = { sequence: portion.sequence, entities: 0, last: null, keys: new Map(), hasMoreKeys: false }
  add(counts, portion)
  return counts
}

/** Adds a portion, whose entities are older than those counted before. */
function add(counts: Counts, portion: Portion): void {
  counts.entities += portion.entities
  counts.last = portion.entities < portionSize ? null : portion.last
  for (const counted of portion.keys) {
    const known = counts.keys.get(counted.key)
    if (known) addKey(known, counted)
    else if (counts.keys.size < maxKeys) counts.keys.set(counted.key, counted)
    else counts.hasMoreKeys = true
  }
}

function addKey(known: CountedKey, counted: CountedKey): void {
  known.count += counted.count
  for (const type of observedTypes) known.types[type] += counted.types[type]
  if (counted.first_seen < known.first_seen) known.first_seen = counted.first_seen
  if (counted.last_seen > known.last_seen) known.last_seen = counted.last_seen
  known.examples = [...known.examples, ...counted.examples].slice(0, maxShownExamples)
}

const itemsOf = ({ keys }: Counts): ObservedKey[] =>
  [...keys.keys()].sort().map(key => ({ ...keys.get(key)!, declarable: undeclarable(key) === undefined }))

const endOf = ({ sequence, entities, last, hasMoreKeys }: Counts) => ({
  sequence,
  entities,
  truncated: last !== null || hasMoreKeys,
})

/** The maximum number of examples of entities whose value does not fit. */
const maxMisfitExamples = 10

/** The stored values that an attribute would accept or reject. */
type Fitting = { fits: number; misfits: number; misfit_types: Record<ObservedType, number>; examples: string[] }

/**
 * Counts the stored values that an attribute would accept, and declares it, unless it is a dry run. Throws a Fault of
 * 400 or 409. If there is too little time to count, nothing is declared.
 */
export async function declareObserved(
  call: DefinitionCall,
  { dry_run = false, ...declaration }: DeclareBody,
  { scopes }: { scopes: ReadonlySet<Scope> },
) {
  const { db, organization_id, signal } = call
  const { owner, key, type, cardinality = 'one' } = declaration
  const reason = undeclarable(key)
  if (reason) throwBrokenRule('/key', reason)
  const definitions = await currentDefinitions(call, signal)
  const stack_id = ownerIdOf(definitions, owner)
  if (definitions.declared.get(stack_id)?.has(key)) throwKeyTaken('is already declared for this owner')
  if (dry_run) await createAttribute({ ...call, isDryRun: true }, declaration)
  const values = [organization_id, stack_id, key, type, cardinality === 'many', maxMisfitExamples]
  const [fitting] = (await db.query<Fitting>(countFittingSql, values, signal)) as [Fitting]
  const examples = scopes.has(readScopeOf(stack_id)) ? fitting.examples : []
  if (dry_run) return { attribute: null, ...fitting, examples }
  return { attribute: await createAttribute(call, declaration), ...fitting, examples }
}
