import type { Attribute, ConsentType, Stack } from '../../client/index.ts'

/** The definitions of a file with every default filled in, in the order of the file. */
export type Declared = {
  stacks: DeclaredStack[]
  attributes: DeclaredAttribute[]
  consent_types: DeclaredConsentType[]
}
export type DeclaredStack = Omit<Stack, 'created_at' | 'updated_at'>
export type DeclaredAttribute = Omit<Attribute, 'id' | 'index_state' | 'created_at' | 'updated_at'>
export type DeclaredConsentType = Omit<ConsentType, 'id' | 'text_versions' | 'created_at' | 'updated_at'>

/** The name of an attribute, unique in the organization: `owner.key`. */
export const attributeName = ({ owner, key }: { owner: string; key: string }): string => `${owner}.${key}`
