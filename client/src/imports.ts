import { EndpointGroup } from './endpoint-group.ts'
import { Listing, type PageOptions, pageOf } from './listing.ts'
import type { CallOptions } from './options.ts'
import type { Import, ImportMapping, ImportMappingBody, UndoBody, Undone } from './wire.ts'

/** The page of a list of imports: 50 by default, at most 500. */
export type ImportListOptions = PageOptions & CallOptions

/** The imports of the organization. `client.people` and `client.stack` import. The scope of the list is `changes:read`. */
export class ImportEndpoints extends EndpointGroup {
  /**
   * Lists the imports with their counts and authors, newest first.
   *
   * ```ts
   * const { items } = await client.imports.list().page()
   * console.log(Array.isArray(items)) // true
   * ```
   */
  list({ size, after, ...options }: ImportListOptions = {}): Listing<Import> {
    const read = (before?: string) => this.send('GET /v1/imports', { query: { before, limit: size } }, options)
    return new Listing(after => pageOf(read(after), ({ id }) => id), after)
  }

  /**
   * Undoes the changes of an import, except values that were written since, which the result lists in `left`. It sends
   * requests until the undo is complete. With `dryRun`, nothing changes. The scope is `people:write`, and for records
   * `records:write` too.
   *
   * ```ts
   * const requestId = crypto.randomUUID()
   * for await (const _ of client.people.import([{ external_id: 'by mistake' }], { requestId }));
   * const { deleted, left } = await client.imports.undo(requestId)
   * console.log(deleted, left.length) // 1 0
   * ```
   */
  undo(import_id: string, { dryRun = false, ...options }: CallOptions & { dryRun?: boolean } = {}): Promise<Undone> {
    return undoAll(dryRun, body =>
      this.send('POST /v1/imports/{import_id}/undo', { params: { import_id }, body }, options),
    )
  }

  /**
   * Lists the column mappings of earlier files, newest first. The scope is `schema:read`.
   *
   * ```ts
   * await client.imports.saveMapping({ owner: 'people', header: ['Nr', 'Ort'], fields: ['external_id', null] })
   * const [mapping] = await client.imports.mappings()
   * console.log(mapping?.fields) // [ 'external_id', null ]
   * ```
   */
  async mappings(options?: CallOptions): Promise<ImportMapping[]> {
    return (await this.send('GET /v1/import-mappings', {}, options)).items
  }

  /**
   * Stores the column mapping of a file, and replaces an earlier one of the same header. The scope is `people:write`.
   */
  saveMapping(body: ImportMappingBody, options?: CallOptions): Promise<ImportMapping> {
    return this.send('PUT /v1/import-mappings', { body }, options)
  }

  /** Deletes a mapping by its id. The scope is `people:write`. */
  async forgetMapping(mapping_id: string, options?: CallOptions): Promise<void> {
    await this.send('DELETE /v1/import-mappings/{mapping_id}', { params: { mapping_id } }, options)
  }
}

/** Sends the requests of an undo until it is complete, and returns their results together. */
export async function undoAll(dryRun: boolean, send: (body: UndoBody) => Promise<Undone>): Promise<Undone> {
  const all: Undone = { dry_run: dryRun, deleted: 0, restored: 0, updated: 0, left: [], has_more: true, position: 0 }
  while (all.has_more) {
    const body = { dry_run: dryRun, ...(dryRun && all.position > 0 && { position: all.position }) }
    const { deleted, restored, updated, left, has_more, position } = await send(body)
    all.deleted += deleted
    all.restored += restored
    all.updated += updated
    all.left.push(...left)
    Object.assign(all, { has_more, position })
  }
  return all
}
