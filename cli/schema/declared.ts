import type { Attribute, ConsentType, Segment, Stack } from '../../client/index.ts'

/** The definitions of a file with every default filled in, in the order of the file. */
export type Declared = {
  stacks: DeclaredStack[]
  attributes: DeclaredAttribute[]
  consent_types: DeclaredConsentType[]
  /** Undefined if the file does not have the list: the segments are then left as they are. */
  segments?: DeclaredSegment[]
}
export type DeclaredStack = Omit<Stack, 'created_at' | 'updated_at'>
export type DeclaredAttribute = Omit<Attribute, 'id' | 'index_state' | 'created_at' | 'updated_at'>
export type DeclaredConsentType = Omit<ConsentType, 'id' | 'text_versions' | 'created_at' | 'updated_at'>
export type DeclaredSegment = Omit<Segment, 'created_at' | 'updated_at'>

/** The name of an attribute, unique in the organization: `owner.key`. */
export const attributeName = ({ owner, key }: { owner: string; key: string }): string => `${owner}.${key}`
