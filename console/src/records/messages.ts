import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  stacks: ['Stacks', 'Sammlungen', 'Raccolte'],
  kinds: { item: ['Items', 'Dinge', 'Oggetti'], event: ['Events', 'Ereignisse', 'Eventi'] },
  recordCount: ['Records', 'Datensätze', 'Record'],
  countFailed: ['cannot be counted', 'lässt sich nicht zählen', 'non si può contare'],
  schemaHidden: [
    'This session may not read the schema, so it cannot list the stacks.',
    'Diese Sitzung darf das Schema nicht lesen und kann die Sammlungen daher nicht auflisten.',
    'Questa sessione non può leggere lo schema, quindi non può elencare le raccolte.',
  ],
  noStacks: ['No stacks yet', 'Noch keine Sammlungen', 'Ancora nessuna raccolta'],
  noStacksAdvice: [
    'A stack holds one kind of record, such as orders or visits. It is created in the schema, or by a sample shop.',
    'Eine Sammlung enthält eine Art von Datensätzen, etwa Bestellungen oder Besuche. Sie wird im Schema angelegt, oder durch einen Beispielshop.',
    'Una raccolta contiene un genere di record, come ordini o visite. Si crea nello schema, o con un negozio di esempio.',
  ],
  openSchema: ['Open the schema', 'Schema öffnen', 'Apri lo schema'],
})
