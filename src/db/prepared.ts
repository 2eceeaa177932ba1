import pg from 'pg'
import { unknownOutcomeOfShard } from './citus.ts'
import { clearWarning, unknownOutcomeOf } from './warnings.ts'

type Shape = { fields: unknown; _parsers: unknown; _prebuiltEmptyResultObject: unknown }

const shapeOf = ({ fields, _parsers, _prebuiltEmptyResultObject }: Shape): Shape => ({
  fields,
  _parsers,
  _prebuiltEmptyResultObject,
})

/**
 * The prefix of the names of statements whose text depends on the shape of a request. A connection keeps the last
 * {@link maxShapes} of them.
 */
export const shapePrefix = 'shape_'

/** A planned statement of a filter takes about 100 kB of a PostgreSQL process. */
export const maxShapes = 100

type OnEnd = (error: Error | null, result: pg.QueryResult) => void

/** The members of pg's Query that its type declarations omit. */
type QueryInternals = {
  name: string
  callback: OnEnd
  _result: Shape
  _accumulateRows: boolean
  prepare(connection: pg.Connection): void
  handleCommandComplete(message: unknown, connection: pg.Connection): void
}
const Query = pg.Query as unknown as new (text: string, values: unknown[]) => QueryInternals

/** The row shapes of a connection's statements, and a proxy of the connection that sends no Describe message. */
type Descriptions = {
  shapes: Map<string, Shape>
  withoutDescribe: pg.Connection
  /** The names of statements of shapes, the least recently used first. */
  recent: Set<string>
}

const descriptionsByConnection = new WeakMap<pg.Connection, Descriptions>()

function descriptionsOf(connection: pg.Connection): Descriptions {
  const existing = descriptionsByConnection.get(connection)
  if (existing) return existing
  const withoutDescribe = Object.assign(Object.create(connection) as pg.Connection, { describe: () => {} })
  const descriptions = { shapes: new Map<string, Shape>(), withoutDescribe, recent: new Set<string>() }
  descriptionsByConnection.set(connection, descriptions)
  return descriptions
}

/** pg's record of the statements that are prepared on a connection. */
type Statements = { parsedStatements: Record<string, string> }

/** Records the use of a statement of a shape. If there are too many, closes the least recently used one. */
function noteShape(connection: pg.Connection, name: string, { shapes, recent }: Descriptions): void {
  recent.delete(name)
  recent.add(name)
  const [oldest] = recent
  const { parsedStatements } = connection as unknown as Statements
  // A statement that was sent and not answered yet stays until later.
  if (recent.size <= maxShapes || !oldest || parsedStatements[oldest] === undefined) return
  recent.delete(oldest)
  shapes.delete(oldest)
  delete parsedStatements[oldest]
  ;(connection as unknown as { close(statement: { type: 'S'; name: string }): void }).close({ type: 'S', name: oldest })
}

/**
 * A run of a prepared statement. The shape of its rows is fixed while it is prepared, because PostgreSQL refuses to run
 * it if the shape would change. So only the first run on a connection requests the shape. pg also does not copy a
 * configuration object by its property descriptors here. Both together save about 20 of the 90 µs that pg needs per
 * statement.
 */
class Run extends Query {
  readonly #client: pg.ClientBase
  #shapes: Map<string, Shape> | undefined

  constructor(client: pg.ClientBase, text: string, values: unknown[], { name, onEnd }: { name: string; onEnd: OnEnd }) {
    super(text, values)
    this.#client = client
    this.name = name
    this.callback = onEnd
  }

  override prepare(connection: pg.Connection): void {
    const descriptions = descriptionsOf(connection)
    const { shapes, withoutDescribe } = descriptions
    if (this.name.startsWith(shapePrefix)) noteShape(connection, this.name, descriptions)
    const shape = shapes.get(this.name)
    if (shape) {
      Object.assign(this._result, shape)
      this._accumulateRows = true
    } else if (this.name !== '') this.#shapes = shapes
    super.prepare(shape ? withoutDescribe : connection)
  }

  override handleCommandComplete(message: unknown, connection: pg.Connection): void {
    super.handleCommandComplete(message, connection)
    clearWarning(this.#client)
    this.#shapes?.set(this.name, shapeOf(this._result))
  }
}

/** Whether a statement with this name is prepared on the connection. */
export const isPrepared = (client: pg.ClientBase, name: string): boolean =>
  descriptionsOf((client as unknown as { connection: pg.Connection }).connection).shapes.has(name)

/**
 * Runs a statement. A named statement is prepared by its first run on the connection. Outside a transaction, the
 * statement commits by itself, and can reject with OutcomeUnknown as a COMMIT can.
 */
export function runPrepared(
  client: pg.ClientBase,
  { name, text }: { name: string; text: string },
  values: unknown[],
): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    const onEnd: OnEnd = (error, result) => {
      const failure = unknownOutcomeOfShard(error) ?? error ?? unknownOutcomeOf(client)
      if (failure) reject(failure)
      else resolve(result)
    }
    client.query(new Run(client, text, values, { name, onEnd }) as unknown as pg.Submittable)
  })
}
