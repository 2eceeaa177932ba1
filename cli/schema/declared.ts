import type { Attribute, ConsentType, Segment, Stack } from '../../client/index.ts'
import { noRules } from '../../src/values/attribute-rules.ts'

/** The definitions of a file with every default filled in, in the order of the file. */
export type Declared = {
  stacks: DeclaredStack[]
  attributes: DeclaredAttribute[]
  consent_types: DeclaredConsentType[]
  /** Undefined if the file does not have the list: the push then changes no segment. */
  segments?: DeclaredSegment[]
}
export type DeclaredStack = Omit<Stack, 'created_at' | 'updated_at'>
export type DeclaredAttribute = Omit<Attribute, 'id' | 'index_state' | 'created_at' | 'updated_at'>
export type DeclaredConsentType = Omit<ConsentType, 'id' | 'text_versions' | 'created_at' | 'updated_at'>
export type DeclaredSegment = Omit<Segment, 'created_at' | 'updated_at'>

/** The name of an attribute, unique in the organization: `owner.key`. */
export const attributeName = ({ owner, key }: { owner: string; key: string }): string => `${owner}.${key}`

/** The defaults of members that the file omits. */
export const defaultsOf = {
  stack: (key: string) => ({ name: key, retention_days: null, label: null, summary: null, erased_with: null }),
  attribute: (key: string) => ({
    ...{ name: key, description: null, target_stack: null, cardinality: 'one' as const },
    ...{ indexed: false, searchable: false, state: 'active' as const, ...noRules },
  }),
  consentType: (key: string) => ({
    ...{ name: key, description: null },
    ...{ mandatory: false, default_state: false, state: 'active' as const },
  }),
  segment: (key: string) => ({ name: key, description: null }),
}
export const channelDefaults = { is_default: false, double_opt_in: false }
