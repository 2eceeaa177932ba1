import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  en: {
    stacks: 'Stacks',
    kinds: { item: 'Items', event: 'Events' },
    recordCount: 'Records',
    countFailed: 'cannot be counted',
    schemaHidden: 'This session may not read the schema, so it cannot list the stacks.',
    noStacks: 'No stacks yet',
    noStacksAdvice:
      'A stack holds one kind of record, such as orders or visits. It is created in the schema, or by a sample shop.',
    openSchema: 'Open the schema',
  },
  de: {
    stacks: 'Sammlungen',
    kinds: { item: 'Dinge', event: 'Ereignisse' },
    recordCount: 'Datensätze',
    countFailed: 'lässt sich nicht zählen',
    schemaHidden: 'Diese Sitzung darf das Schema nicht lesen und kann die Sammlungen daher nicht auflisten.',
    noStacks: 'Noch keine Sammlungen',
    noStacksAdvice:
      'Eine Sammlung enthält eine Art von Datensätzen, etwa Bestellungen oder Besuche. Sie wird im Schema angelegt, oder durch einen Beispielshop.',
    openSchema: 'Schema öffnen',
  },
  it: {
    stacks: 'Raccolte',
    kinds: { item: 'Oggetti', event: 'Eventi' },
    recordCount: 'Record',
    countFailed: 'non si può contare',
    schemaHidden: 'Questa sessione non può leggere lo schema, quindi non può elencare le raccolte.',
    noStacks: 'Ancora nessuna raccolta',
    noStacksAdvice:
      'Una raccolta contiene un genere di record, come ordini o visite. Si crea nello schema, o con un negozio di esempio.',
    openSchema: 'Apri lo schema',
  },
})
