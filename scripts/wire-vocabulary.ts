import { methods } from '../src/consents/schema.ts'
import { batchBody } from '../src/entities/batch.ts'
import { declaredTypes } from '../src/observed/schema.ts'
import { operations, subjects } from '../src/organizations/logged-changes.ts'
import { pageLanguages } from '../src/organizations/settings-schema.ts'
import { defaultLimits } from '../src/process/config.ts'
import { filterLimits } from '../src/queries/grammar/grammar.ts'
import { maxFields } from '../src/queries/schema.ts'
import { scopes } from '../src/route/scopes.ts'
import { searchBody } from '../src/search/schema.ts'
import { attributeRules, attributeTypes, operandKind, ruleNames } from '../src/values/attribute-rules.ts'
import { channelTable } from '../src/values/channels.ts'
import { countriesByCallingCode, isCountry } from '../src/values/phone-numbers.ts'
import {
  flagFields,
  phoneColumns,
  profileFlags,
  profileTexts,
  summaryColumns,
  textFields,
  wordColumns,
} from '../src/values/profile-fields.ts'
import { allEvents, eventSubjects } from '../src/webhooks/events.ts'

const searched: readonly string[] = [...wordColumns, ...phoneColumns]

export const profileFields = Object.fromEntries(
  [...profileTexts, ...profileFlags].map(name => [
    name,
    {
      type: name in textFields ? (textFields[name as 'email'].type ?? 'text') : 'boolean',
      isSearched: searched.includes(name),
      description: { ...textFields, ...flagFields }[name].description,
      isSummary: (summaryColumns as string[]).includes(name),
    },
  ]),
)

const ruleOperands = Object.fromEntries(
  ruleNames.map(name => [name, { types: attributeRules[name].types, operand: operandKind(name) }]),
)

/** A bound of a member of a body. */
const boundOf = ({ properties }: { properties: object }, member: string, bound: string): number =>
  (properties as Record<string, Record<string, number>>)[member]![bound]!

const { page, jsonDepth, stringBytes, keyBytes } = defaultLimits
export const limits = {
  page,
  searchPage: boundOf(searchBody, 'size', 'maximum'),
  fields: maxFields,
  batchOperations: boundOf(batchBody, 'operations', 'maxItems'),
  ...{ jsonDepth, stringBytes, keyBytes },
}

const mapValues = <V, W>(values: Readonly<Record<string, V>>, change: (value: V) => W): Record<string, W> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]))

/** The values of the vocabulary by name, each with its comment, and the name of the type and of the list of its keys. */
const values: Record<string, { about: string; value: object; type?: string; names?: string }> = {
  profileFields: {
    about:
      'The fields of a person, in the order of reads. A search finds people by those with `isSearched`. A summary follows from the consent answers.',
    value: mapValues(profileFields, ({ type, isSearched, isSummary }) => ({ type, isSearched, isSummary })),
    type: 'ProfileField',
    names: 'profileFieldNames',
  },
  channels: {
    about: 'The channels of consents: the field with the address, and the summary of the answers.',
    value: mapValues(channelTable, ({ address, flag }) => ({ address, flag })),
    type: 'Channel',
    names: 'channelNames',
  },
  changeSubjects: { about: 'The subjects of changes.', value: subjects },
  changeOperations: { about: 'The operations of changes.', value: operations },
  eventSubjects: { about: 'The subjects of the events of webhooks.', value: eventSubjects },
  eventKinds: { about: 'The kinds of events, such as `created` in `person.created`.', value: allEvents },
  answerMethods: { about: 'How an answer was given.', value: methods },
  scopes: { about: 'The scopes of tokens.', value: scopes },
  attributeTypes: { about: 'The types of attributes.', value: attributeTypes },
  declarableTypes: { about: 'The types with which an observed key can be declared.', value: declaredTypes },
  attributeRules: {
    about:
      'The rules of attributes, each with the types that it applies to, and the kind of its operand: `flag` is a boolean, `value` a value of the type ' +
      'of the attribute, and `list` several.',
    value: ruleOperands,
    type: 'RuleName',
    names: 'ruleNames',
  },
  callingCodes: {
    about: 'The countries (ISO 3166) of each calling code of phone numbers, the main one first.',
    value: Object.fromEntries(
      Object.entries(countriesByCallingCode()).filter(([, countries]) => countries.every(isCountry)),
    ),
  },
  pageLanguages: { about: 'The languages of the pages for people.', value: pageLanguages },
  limits: { about: 'The limits of a service whose settings do not change them.', value: limits },
  filterLimits: {
    about:
      'The limits of a filter: levels of nesting, conditions in total, elements of `$in` or `$nin`, relationships in a row.',
    value: filterLimits,
  },
}

/** Returns the text of client/src/vocabulary.ts. */
export function vocabularyText(): string {
  const texts = Object.entries(values).map(([name, { about, value, type, names }]) => {
    const text = `/** ${about} */\nexport const ${name} = ${JSON.stringify(value)} as const\n`
    const typeText = type ? `export type ${type} = keyof typeof ${name}\n` : ''
    return text + typeText + (names ? `export const ${names} = Object.keys(${name}) as ${type}[]\n` : '')
  })
  return ['// generated by scripts/wire.ts from the lists of the service. Change those instead.\n', ...texts].join('\n')
}
