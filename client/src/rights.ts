import { pathOf, pathOfId } from './entity-reads.ts'
import { KithConnectionError } from './errors.ts'
import type { CallOptions } from './options.ts'
import { ndjson } from './stream.ts'
import type { Transport } from './transport.ts'
import type { DossierLine } from './wire.ts'

/** The rights of people: what is held about one. */
export class RightsEndpoints {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /**
   * Reads everything that is held about a person, line by line and from one moment. Also the last name of a deleted person leads to
   * the dossier. Takes the scopes `people:read`, `consents:read`, `changes:read` and `records:read`. Throws a
   * {@link KithConnectionError} if the dossier is cut off.
   *
   * ```ts
   * for await (const line of client.rights.dossier('ada')) {
   *   if (line.type === 'about') console.log(line.person.state) // active
   *   if (line.type === 'end') console.log(line.lines.profile) // 1
   * }
   * ```
   */
  dossier(external_id: string, options?: CallOptions): AsyncIterable<DossierLine> {
    return this.#dossier(pathOf(external_id), options)
  }

  /**
   * Reads everything that is held about a person by the internal identifier, also of one who was deleted.
   *
   * ```ts
   * const { id } = await client.people.get('ada')
   * await client.people.delete('ada')
   * for await (const line of client.rights.dossierById(id)) if (line.type === 'about') console.log(line.person.state) // deleted
   * ```
   */
  dossierById(id: string, options?: CallOptions): AsyncIterable<DossierLine> {
    return this.#dossier(pathOfId(id), options)
  }

  #dossier(path: string, options: CallOptions | undefined): AsyncIterable<DossierLine> {
    const request = { method: 'GET', path: `/v1/people${path}/dossier`, options, format: ndjson } as const
    return { [Symbol.asyncIterator]: () => completeLines(this.#transport.stream(request)) }
  }
}

async function* completeLines(lines: AsyncGenerator<unknown>): AsyncGenerator<DossierLine, void, undefined> {
  let isComplete = false
  for await (const line of lines as AsyncGenerator<DossierLine>) {
    isComplete = line.type === 'end'
    yield line
  }
  if (!isComplete) throw new KithConnectionError('The dossier is incomplete: its last line is missing.', {})
}
