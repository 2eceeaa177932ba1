import { consentDefaults } from '../consents/answers.ts'
import type { Database, Transaction } from '../db/db.ts'
import { type Definitions, definitionsAt, knownDefinitions, people_stack_id } from '../organizations/definitions.ts'
import type { Signal } from '../signal.ts'
import { type Position, sizeToRead, startOf } from './page.ts'
import { read_shown, read_shown_page, read_shown_part } from './shown-sql.ts'

/** A page as it goes out: its items as JSON texts with commas between them. */
export type ShownPage = { items: string; has_more: boolean }

/** An entity as it goes out, and the identifier that it was asked by. */
export type Shown = { identifier: string; version: number; json: string }

type Dated = { schema_version: number }

/** A page of the entities of a stack, in order of their ids, shown by definitions that are no older than its rows. */
export async function readShownPage(
  db: Database,
  organization_id: number,
  stack_id: number,
  position: Position,
  signal?: Signal,
): Promise<ShownPage> {
  const kind = kindOf(stack_id)
  const range = [organization_id, stack_id, startOf(position), sizeToRead(position)]
  const [row] = await underDefinitions(db, organization_id, signal, definitions => {
    const values = [...range, ...parametersOf(definitions)[kind](stack_id)]
    return db.query<Dated & { items: string | null; has_more: boolean }>(
      read_shown_page[kind][position.direction],
      values,
      signal,
    )
  })
  if (!row) throw new Error('an aggregate came back without a row')
  return { items: row.items ?? '', has_more: row.has_more }
}

/** Entities of a stack by identifiers of one sort, in no order; missing ones are left out. */
export async function readShown(
  db: Database,
  organization_id: number,
  stack_id: number,
  by: 'id' | 'external_id',
  identifiers: readonly string[],
  signal?: Signal,
): Promise<Shown[]> {
  return underDefinitions(db, organization_id, signal, definitions =>
    queryShown(db, definitions, stack_id, by, identifiers, signal),
  )
}

/** The same, shown by these definitions; each tells by which it should be. */
export function queryShown(
  db: Database | Transaction,
  definitions: Definitions,
  stack_id: number,
  by: 'id' | 'external_id',
  identifiers: readonly string[],
  signal?: Signal,
): Promise<(Dated & Shown)[]> {
  const kind = kindOf(stack_id)
  const values = [definitions.organization_id, stack_id, identifiers, ...parametersOf(definitions)[kind](stack_id)]
  return db.query(read_shown[kind][by], values, signal)
}

const kindOf = (stack_id: number) => (stack_id === people_stack_id ? 'person' : 'record')

/** Reads until the definitions are no older than what was read. */
async function underDefinitions<R extends Dated>(
  db: Database,
  organization_id: number,
  signal: Signal | undefined,
  read: (definitions: Definitions) => Promise<R[]>,
): Promise<R[]> {
  let definitions = await knownDefinitions(db, organization_id, signal)
  for (;;) {
    const rows = await read(definitions)
    const newest = rows.reduce((version, row) => Math.max(version, row.schema_version), 0)
    if (newest <= definitions.version) return rows
    definitions = await definitionsAt(db, organization_id, newest, signal)
  }
}

/** A part of an export: lines of JSON, each with its line feed, and the id of the last one; null behind the end. */
export type ShownPart = { lines: string; last: string | null }

/** The entities of a stack beyond an id and `skip` more, `size` of them at most, in order of their ids, as the definitions show them. */
export async function readShownPart(
  db: Pick<Database, 'query'>,
  definitions: Definitions,
  stack_id: number,
  { after, skip, size }: { after: string; skip: number; size: number },
): Promise<ShownPart> {
  const kind = kindOf(stack_id)
  const values = [
    definitions.organization_id,
    stack_id,
    after,
    skip,
    size,
    ...parametersOf(definitions)[kind](stack_id),
  ]
  const [row] = await db.query<{ lines: string | null; last: string | null }>(read_shown_part[kind], values)
  return { lines: row?.lines ?? '', last: row?.last ?? null }
}

type Parameters = Record<'person' | 'record', (stack_id: number) => unknown[]>

const known = new WeakMap<Definitions, Parameters>()

/** What the statements are told of the definitions, written once for each version of them. */
function parametersOf(definitions: Definitions): Parameters {
  const written = known.get(definitions) ?? writeParameters(definitions)
  known.set(definitions, written)
  return written
}

function writeParameters({ attributes, consent_types, stacks }: Definitions): Parameters {
  const relationships = attributes
    .filter(({ target_stack_id }) => target_stack_id !== null)
    .map(({ id, key, cardinality }) => ({ i: id, k: key, m: cardinality === 'many' }))
  const defaults = consentDefaults(consent_types).map(({ answer_key, shown }, n) => ({
    n,
    k: answer_key,
    i: shown.consent_type_id,
    h: shown.channel,
    d: shown,
  }))
  const links = JSON.stringify(relationships)
  const of_people = [links, JSON.stringify(defaults), JSON.stringify(defaults.map(({ d }) => d))]
  const keys = new Map(stacks.map(({ id, key }) => [id, key]))
  return { person: () => of_people, record: stack_id => [links, keys.get(stack_id)] }
}
