import type { Scope } from '../scopes.ts'

/** The authenticated caller of a request: its organization, the subject that the change log names, and its scopes. */
export type Caller = Readonly<{
  organization: Readonly<{ id: number; key: string }>
  subject: string
  scopes: ReadonlySet<Scope>
}>
