import type { Attribute, ConsentType, Stack } from '../../client/index.ts'

/** Definitions as they are meant to stand, with nothing left to a default; in order of the file. */
export type Declared = {
  stacks: DeclaredStack[]
  attributes: DeclaredAttribute[]
  consent_types: DeclaredConsentType[]
}
export type DeclaredStack = Omit<Stack, 'created_at' | 'updated_at'>
export type DeclaredAttribute = Omit<Attribute, 'id' | 'index_state' | 'created_at' | 'updated_at'>
export type DeclaredConsentType = Omit<ConsentType, 'id' | 'created_at' | 'updated_at'>

/** The name of an attribute among all of the organization. */
export const nameOf = ({ owner, key }: { owner: string; key: string }): string => `${owner}.${key}`
