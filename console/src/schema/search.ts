import { addressReader, anyText, oneOf } from '../app/search-params.ts'

export const schemaTabs = ['attributes', 'consents', 'observed', 'picture', 'settings'] as const
export type SchemaTab = (typeof schemaTabs)[number]

/** The address of the page holds the tab, and the owner whose attributes or keys are shown. */
export const validateSchemaSearch = addressReader({ tab: oneOf(schemaTabs), owner: anyText })

/** The address of the form of a new attribute holds its owner. */
export const validateNewAttributeSearch = addressReader({ owner: anyText })
