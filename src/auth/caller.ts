import type { Scope } from './scopes.ts'

/** Who speaks: a tenant, a name within it that is written beside every change, and what it may do. */
export type Caller = Readonly<{
  organization: Readonly<{ id: number; key: string }>
  subject: string
  scopes: ReadonlySet<Scope>
}>
