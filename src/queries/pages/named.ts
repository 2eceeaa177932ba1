import type { EntityKind } from '../../entities/entity-kind.ts'
import { entityPrinter } from '../../entities/read/entity-json.ts'
import { type Identifiers, readNamed } from '../../entities/read/entity-reader.ts'
import type { Included } from '../../entities/read/included.ts'
import type { Projection } from '../../entities/read/projection.ts'
import { yieldIfDue } from '../../process/event-loop.ts'
import type { Call } from '../../route/call.ts'
import type { HandlerResult } from '../../route/result.ts'
import { refuse } from '../../values/errors.ts'
import type { NamedBody } from '../schema.ts'
import { addedReader, shownOf } from './handlers.ts'

/** The rows of one statement. Usually all of a request. */
const portionBytes = 1_048_576
/** Memory reserved for the rows of a portion, and for what is added to them. */
const reservedBytes = 4 * 1_048_576

/** Returns the entities that identifiers lead to, in their order. */
export async function getEntities(kind: EntityKind, call: Call<NamedBody>, stack_id: number): Promise<HandlerResult> {
  const named = identifiersOf(kind, call.body)
  const { projection } = shownOf(call, stack_id)
  const readAdded = await addedReader(call, stack_id, { projection })
  const release = await call.memory.take(reservedBytes)
  return { status: 200, parts: partsOf(call, stack_id, { ...named, projection, readAdded, release }) }
}

function identifiersOf({ identifier }: EntityKind, { external_ids, ids }: NamedBody): Identifiers {
  if ((external_ids === undefined) === (ids === undefined))
    return refuse('invalid_parameter', 'Name the entities by `external_ids` or by `ids`.', {
      details: [{ path: '', message: 'must have one of external_ids and ids' }],
    })
  return external_ids
    ? { by: 'external_id', identifiers: external_ids }
    : { by: 'id', identifiers: ids!.map(id => identifier.toUuid(id)) }
}

type Named = Identifiers & {
  projection: Projection | undefined
  readAdded: ((ids: readonly string[]) => Promise<Included>) | undefined
  release: () => void
}

async function* partsOf(
  { context, signal, within, shown }: Call<NamedBody>,
  stack_id: number,
  { by, identifiers, projection, readAdded, release }: Named,
): AsyncGenerator<Buffer> {
  try {
    let opening = '{"items":['
    for (let from = 0; from < identifiers.length; ) {
      const selection = { by, identifiers: identifiers.slice(from), minBytes: portionBytes, projection }
      const { rows, definitions } = await within(() => readNamed(context, stack_id, selection, signal))
      const found = new Set(rows.flatMap(({ id, row }) => (row === null ? [] : id!)))
      shown.addAll(stack_id, found)
      const added = await within(async () => readAdded?.([...found]))
      await yieldIfDue()
      const print = entityPrinter(definitions, stack_id, projection, added)
      yield Buffer.from(opening + rows.map(({ row }) => (row === null ? 'null' : print(row))).join())
      opening = ','
      from += rows.length
    }
    yield Buffer.from(']}')
  } finally {
    release()
  }
}
