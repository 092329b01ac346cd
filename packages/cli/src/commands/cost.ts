// `parley cost`: model usage and its cost.

import { asking } from "../control/call.ts";
import { totalCost, usageTable } from "../control/text.ts";
import { UsageError } from "../errors.ts";

const defaultDays = "7";

export const run = asking(async (api, { values }) => {
  const days = values.text("days") ?? defaultDays;
  if (!/^[1-9]\d{0,2}$/.test(days)) throw new UsageError(`--days: "${days}" is not a number from 1 to 999.`);
  const { rows } = await api.usage({ days: Number(days), session: values.text("session") });
  return { data: { rows, total: totalCost(rows) }, text: (paint) => usageTable(rows, paint) };
});
