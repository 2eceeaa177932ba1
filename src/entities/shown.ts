import { consentDefaults } from '../consents/answers.ts'
import type { Database } from '../db/db.ts'
import { type Definitions, definitionsAt, knownDefinitions, people_stack_id } from '../organizations/definitions.ts'
import { type Position, sizeToRead, startOf } from './page.ts'
import { read_shown_page, read_shown_part } from './shown-sql.ts'

/** A page as it goes out: its items as JSON texts with commas between them. */
export type ShownPage = { items: string; has_more: boolean }

type ShownRow = { items: string | null; has_more: boolean; schema_version: number }

/** A page of the entities of a stack, in order of their ids, shown by definitions that are no older than its rows. */
export async function readShownPage(
  db: Database,
  organization_id: number,
  stack_id: number,
  position: Position,
  signal?: AbortSignal,
): Promise<ShownPage> {
  const kind = stack_id === people_stack_id ? 'person' : 'record'
  const range = [organization_id, stack_id, startOf(position), sizeToRead(position)]
  let definitions = await knownDefinitions(db, organization_id, signal)
  for (;;) {
    const values = [...range, ...parametersOf(definitions)[kind](stack_id)]
    const [row] = await db.query<ShownRow>(read_shown_page[kind][position.direction], values, signal)
    if (!row) throw new Error('an aggregate came back without a row')
    if (row.schema_version <= definitions.version) return { items: row.items ?? '', has_more: row.has_more }
    definitions = await definitionsAt(db, organization_id, row.schema_version, signal)
  }
}

/** A part of an export: lines of JSON, each with its line feed, and the id of the last one; null behind the end. */
export type ShownPart = { lines: string; last: string | null }

/** The entities of a stack beyond an id, `size` of them at most, in order of their ids, as the definitions show them. */
export async function readShownPart(
  db: Pick<Database, 'query'>,
  definitions: Definitions,
  stack_id: number,
  after_id: string,
  size: number,
): Promise<ShownPart> {
  const kind = stack_id === people_stack_id ? 'person' : 'record'
  const values = [definitions.organization_id, stack_id, after_id, size, ...parametersOf(definitions)[kind](stack_id)]
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
