import { client, pagedQuery, readQuery } from '../app/client.ts'

/** The key of all queries of rules and holds, for a write that affects them. */
export const lifetimesKey = ['lifetimes']

export const rulesQuery = readQuery([...lifetimesKey, 'rules'], options => client.retentionRules.list(options).all())

export const ruleQuery = (id: number) =>
  readQuery([...lifetimesKey, 'rule', id], options => client.retentionRules.get(id, options))

export const previewQuery = (id: number) =>
  readQuery([...lifetimesKey, 'preview', id], options => client.retentionRules.preview(id, options))

export const runsQuery = (id: number) =>
  readQuery([...lifetimesKey, 'runs', id], options => client.retentionRules.runs(id, options).all())

export const holdsQuery = pagedQuery([...lifetimesKey, 'holds'], at => client.holds.list(at).page())

/** The hold of a person, or null. */
export const holdQuery = (id: string) =>
  readQuery(
    [...lifetimesKey, 'hold', id],
    async ({ signal }) => (await client.holds.list({ person: id, signal }).page()).items[0] ?? null,
  )
