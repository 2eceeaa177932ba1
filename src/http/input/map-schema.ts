const dataKeywords = ['const', 'enum', 'default', 'examples']
const namedKeywords = ['properties', 'patternProperties', '$defs', 'dependentSchemas']

/** Returns a copy of a JSON Schema in which `change` was applied to every schema, innermost first. */
export function mapSchema<Schema extends object>(schema: object, change: (schema: Schema) => Schema): Schema {
  const mapAny = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(mapAny)
    return typeof value === 'object' && value !== null ? mapSchema(value, change) : value
  }
  const mapKeyword = (value: unknown, keyword: string): unknown => {
    if (dataKeywords.includes(keyword)) return value
    return namedKeywords.includes(keyword) ? mapValues(value as object, mapAny) : mapAny(value)
  }
  return change(mapValues(schema, mapKeyword) as Schema)
}

function mapValues(values: object, change: (value: unknown, key: string) => unknown): object {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value, key)]))
}
