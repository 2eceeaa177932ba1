import type { Client, CountResult, EntityAddress, Page } from '../../client/index.ts'

/** A listing of items of any type. */
export type Pages = { pages(): AsyncIterable<Page<unknown>> }

/** The methods that read people or records. The fields come from the command line, so they have no types. */
export type Reads = {
  get(address: EntityAddress, options: object): Promise<unknown>
  list(selection: object): Pages
  filter(filter: object, selection: object): Pages
  search(text: string, options: object): Pages
  count(filter?: object): Promise<CountResult>
}

/** The reading methods of a stack or of people. */
export const readsOf = (client: Client, stack = 'people'): Reads => client.entities(stack) as Reads

/** The people of a segment, as the service lists them. */
export const peopleOf = (client: Client, segment: string, selection: object): Pages =>
  client.segments.people(segment, selection) as Pages
