export const schemaTabs = ['attributes', 'consents', 'observed', 'picture', 'settings'] as const
export type SchemaTab = (typeof schemaTabs)[number]

/** The address of the page holds the tab, and the owner whose attributes or keys are shown. */
export type SchemaSearch = { tab?: SchemaTab; owner?: string }

const isTab = (value: unknown): value is SchemaTab => schemaTabs.includes(value as SchemaTab)

export function validateSchemaSearch({ tab, owner }: Record<string, unknown>): SchemaSearch {
  return { ...(isTab(tab) && { tab }), ...(typeof owner === 'string' && { owner }) }
}

/** The address of the form of a new attribute holds its owner. */
export type NewAttributeSearch = { owner?: string }

export function validateNewAttributeSearch({ owner }: Record<string, unknown>): NewAttributeSearch {
  return typeof owner === 'string' ? { owner } : {}
}
