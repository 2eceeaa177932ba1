import pg from 'pg'
import { clearWarning, unknownOutcomeOf } from './warnings.ts'

/** What pg makes of the description of a statement's rows. */
type Shape = { fields: unknown; _parsers: unknown; _prebuiltEmptyResultObject: unknown }

const shapeOf = ({ fields, _parsers, _prebuiltEmptyResultObject }: Shape): Shape => ({
  fields,
  _parsers,
  _prebuiltEmptyResultObject,
})

type Ended = (error: Error | null, result: pg.QueryResult) => void

/** What pg's own declarations leave out of a query. */
type Inner = {
  name: string
  callback: Ended
  _result: Shape
  _accumulateRows: boolean
  prepare(connection: pg.Connection): void
  handleCommandComplete(message: unknown, connection: pg.Connection): void
}
const Query = pg.Query as unknown as new (text: string, values: unknown[]) => Inner

/** Of one connection: the shapes of its statements' rows, and the connection itself where nothing is described by it. */
type Known = { shapes: Map<string, Shape>; plain: pg.Connection }

const knownByConnection = new WeakMap<pg.Connection, Known>()

function knownOf(connection: pg.Connection): Known {
  const known = knownByConnection.get(connection)
  if (known) return known
  const plain = Object.assign(Object.create(connection) as pg.Connection, { describe: () => {} })
  const made = { shapes: new Map<string, Shape>(), plain }
  knownByConnection.set(connection, made)
  return made
}

/**
 * A run of a prepared statement. Its rows have one shape for as long as it is prepared (PostgreSQL refuses to run it when
 * they would have another), so that it is asked for with the first run on a connection alone. That, and no copy of a
 * configuration by its property descriptors, is some 20 µs of 90 that pg takes for a statement.
 */
class Run extends Query {
  readonly #client: pg.ClientBase
  #shapes: Map<string, Shape> | undefined

  constructor(client: pg.ClientBase, text: string, values: unknown[], { name, ended }: { name: string; ended: Ended }) {
    super(text, values)
    this.#client = client
    this.name = name
    this.callback = ended
  }

  override prepare(connection: pg.Connection): void {
    const { shapes, plain } = knownOf(connection)
    const shape = shapes.get(this.name)
    if (shape) {
      Object.assign(this._result, shape)
      this._accumulateRows = true
    } else if (this.name !== '') this.#shapes = shapes
    super.prepare(shape ? plain : connection)
  }

  override handleCommandComplete(message: unknown, connection: pg.Connection): void {
    super.handleCommandComplete(message, connection)
    clearWarning(this.#client)
    this.#shapes?.set(this.name, shapeOf(this._result))
  }
}

/**
 * Runs a statement. One with a name is prepared with its first run on the connection. Outside of a transaction it commits by
 * itself, and rejects with OutcomeUnknown as a COMMIT does.
 */
export function runPrepared(
  client: pg.ClientBase,
  { name, text }: { name: string; text: string },
  values: unknown[],
): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    const ended: Ended = (error, result) => {
      const failure = error ?? unknownOutcomeOf(client)
      if (failure) reject(failure)
      else resolve(result)
    }
    client.query(new Run(client, text, values, { name, ended }) as unknown as pg.Submittable)
  })
}
