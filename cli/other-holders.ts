import type { Erased } from '../client/index.ts'

/** Names the other people who once had the external identifier of the command. */
export function otherHoldersText({ other_holders }: Pick<Erased, 'other_holders'>): string[] {
  if (other_holders.length === 0) return []
  return [
    'Other people once had this external identifier and were deleted. If they are the same person, ask for each of them with --id:',
    ...other_holders.map(id => `  - ${id}`),
  ]
}
