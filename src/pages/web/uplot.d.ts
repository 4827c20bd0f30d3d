// Pages with these modules serve uPlot's ES module in the same folder.
import uPlot from 'uplot'
export default uPlot
