import { contextOf } from '../../src/db/context.ts'
import type { Database } from '../../src/db/db.ts'
import { idsOfPage } from '../../src/entities/read/entity-json.ts'
import { type FilteredPage, type PageRequest, readFilteredPage } from '../../src/queries/pages/page.ts'
import type { FilterOptions } from '../../src/queries/plan/reading.ts'

/** Reads a page as a request does, with the ids of its entities. */
export async function readPageIds(
  db: Database,
  organization_id: number,
  request: PageRequest,
  options: FilterOptions = {},
): Promise<FilteredPage & { ids: string[]; has_more: boolean }> {
  const { size } = request.position
  const page = await readFilteredPage(contextOf(db, organization_id), request, options)
  const ids = idsOfPage(page.rows, size + 1)
  return { ...page, ids: ids.slice(0, size), has_more: ids.length > size }
}
