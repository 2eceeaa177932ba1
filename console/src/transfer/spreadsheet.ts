import type { Definitions } from '@kith/client'
import type { CsvLook } from '../../../transfer/export-shape.ts'
import { useLanguage, useMessages } from '../app/language.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, consentTypeName, useDefinitions } from '../entity/schema.ts'

/**
 * The CSV format of a spreadsheet in a locale: if numbers have a decimal comma, semicolons separate the cells. No text
 * runs as a formula.
 */
export function spreadsheetLook(locale: string): CsvLook {
  const hasComma = new Intl.NumberFormat(locale).format(1.5).includes(',')
  return { escapesFormulas: true, ...(hasComma && { delimiter: ';', decimal: ',' }) }
}

/** The CSV format for the reader's spreadsheet, with the column names of lists and forms. */
export function useSpreadsheetLook(owner: string): CsvLook {
  const { locale } = useLanguage()
  const { definitions } = useDefinitions()
  const texts = useMessages(entityMessages)
  return { ...spreadsheetLook(locale), headerOf: name => headerOf(name, owner, definitions, texts) }
}

type Texts = { fields: Record<string, string>; channels: Record<string, string> }

function headerOf(name: string, owner: string, definitions: Definitions, { fields, channels }: Texts): string {
  const [, key] = /^attribute_values\.(.+)$/.exec(name) ?? []
  if (key !== undefined) return attributesOf(definitions, owner).get(key)?.name || key
  const [, type, channel, evidence] = /^consents\.(\d+)\.(\w+)(\..+)?$/.exec(name) ?? []
  if (type === undefined) return fields[name] ?? name
  return `${consentTypeName(definitions.consent_types, Number(type))} (${channels[channel!] ?? channel})${evidence ?? ''}`
}
