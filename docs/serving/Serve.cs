// Serve complaints.onnx in C#.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using Microsoft.ML.OnnxRuntime;
using Microsoft.ML.OnnxRuntime.Tensors;

class Serve
{
    static NamedOnnxValue Column<T>(string name, T[] values)
    {
        // Every input has the shape (n_rows, 1).
        var tensor = new DenseTensor<T>(values, new[] { values.Length, 1 });
        return NamedOnnxValue.CreateFromTensor(name, tensor);
    }

    static void Main()
    {
        // Three rows. NaN is a missing number, "" is missing text.
        var inputs = new List<NamedOnnxValue>
        {
            Column("days", new[] { 2, float.NaN, 25 }),
            Column("channel", new[] { "shop", "", "phone" }),
            Column("text", new[] { "thank you", "it burns", "it never came" }),
        };
        using (var session = new InferenceSession("complaints.onnx"))
        using (var results = session.Run(inputs))
        {
            var outputs = results.ToDictionary(result => result.Name);
            var labels = outputs["label"].AsTensor<string>();
            var probabilities = outputs["probabilities"].AsTensor<float>();
            var culture = CultureInfo.InvariantCulture;
            for (var row = 0; row < probabilities.Dimensions[0]; row++)
            {
                var line = labels[row];
                for (var i = 0; i < probabilities.Dimensions[1]; i++)
                {
                    var value = probabilities[row, i];
                    line += " " + value.ToString("F7", culture);
                }
                Console.WriteLine(line);
            }
        }
    }
}
